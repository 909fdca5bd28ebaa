"""What less noise and better estimates gain over InfTDA as published: three real tables and the paper's six."""

"""Noise intervals: how far the privacy noise may have moved every count of a release, zeros included.

They cover the noise and nothing else: not errors of the survey, nor records that a bound has left out.
"""

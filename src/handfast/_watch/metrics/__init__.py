"""The watch of this process as metrics, by place of creation.

place_series   the places that have series of their own, and the sums of all others
prometheus     a collector for prometheus-client
opentelemetry  instruments for opentelemetry-api
"""

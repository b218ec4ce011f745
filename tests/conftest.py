"""What every test shares: how hard Hypothesis tries, and whether it tries the same again.

`ci` is the default and draws the same examples on every run, so a red build is red again.
`pytest --hypothesis-profile=thorough` draws new ones, many more, and keeps what failed.
"""

from hypothesis import HealthCheck, settings

# No deadline: stores on disk and virtual clocks make the time of one example meaningless.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=2_000,
    stateful_step_count=100,
)
settings.load_profile("ci")

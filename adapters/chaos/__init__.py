"""Real gateway processes on a real store under real faults, judged by what each side wrote down."""

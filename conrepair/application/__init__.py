"""What a person meets: verbs, configurations, reports, and the jobs behind them."""

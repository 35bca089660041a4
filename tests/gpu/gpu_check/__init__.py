"""What only a GPU can prove, measured and written down. tests/gpu/check.sh runs it."""

"""What is run: each file lists scenarios and cases, and runs one."""

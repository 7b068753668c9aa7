"""What a row is compared with where no model predicts it: other rows, the parts and what a text states."""

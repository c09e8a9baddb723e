//! Simulated studies with known answers.

//! All integration tests, in one binary: the real hub from outside, and the rules of the house.

mod faults;
mod hostile;
mod limits;
mod pages;
mod rows;
mod story;
mod tidy;

//! stack
#![no_std]

//! driver
#![no_std]

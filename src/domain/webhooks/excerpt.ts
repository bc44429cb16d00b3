/** The stored part of a receiver's response body. An excerpt of this size may end inside a character. */
export const EXCERPT_BYTES = 4 * 1024;

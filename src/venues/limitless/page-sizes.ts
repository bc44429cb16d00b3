/** How long the venue's CDN keeps an answer, and a little more. */
const CACHED_SECONDS = 31;
/** A listing changes its size this often: six sizes cover the time for which an answer is kept. */
const LISTING_SLOT_MS = 5_000;
const LISTING_SIZES = 6;

/**
 * The page size of a walk over the listing that starts now. The CDN repeats its answer to an address for 30 s, and the size is the
 * one part of the address that may vary, so no two walks within that time ask for the same addresses, unless they start together.
 */
export function listingSizeAt(largest: number, nowMs: number): number {
  return largest - (Math.floor(nowMs / LISTING_SLOT_MS) % LISTING_SIZES);
}

/** The same for the feed of a market, another size each second. `largest` is at least 32. */
export function eventsSizeAt(largest: number, nowMs: number): number {
  return largest - (Math.floor(nowMs / 1000) % CACHED_SECONDS);
}

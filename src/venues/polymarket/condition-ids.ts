/**
 * The condition ids of markets: 32 bytes, or the 31 of protocol V2, which some hosts write with a last byte of zero. Its bytes are the module
 * (1: binary, 2: negative risk, 3: combinations), 18 of a hash, eight zeros and four with the number of the condition in its event.
 */
const CONDITION_ID = /^0x(?:[0-9a-f]{64}|0[12][0-9a-f]{60})$/i;
const V2_BYTES = '0x0[123][0-9a-f]{36}0{16}[0-9a-f]{8}';
const WHOLE_V2 = new RegExp(`^${V2_BYTES}00$`, 'i');
const SHORT_LENGTH = '0x'.length + 62;

export function isConditionId(id: string): boolean {
  return CONDITION_ID.test(id);
}

/** The form in which two ids of one market are equal, and which every host accepts: 32 bytes, in lower case. */
export function wholeConditionId(id: string): string {
  const lower = id.toLowerCase();
  return lower.length === SHORT_LENGTH ? `${lower}00` : lower;
}

/** The form of Gamma: a condition of protocol V2 without its last byte; other ids as they are. */
export function shortConditionId(id: string): string {
  return WHOLE_V2.test(id) ? id.slice(0, SHORT_LENGTH) : id;
}

import { type AddressRules, parseCidrs } from '../../src/domain/webhooks/address-policy.ts';

/** The rules of an operator that allows these ranges, such as `127.0.0.0/8`. */
export function allowing(ranges: string): AddressRules {
  return { allow: parseCidrs(ranges), deny: [] };
}

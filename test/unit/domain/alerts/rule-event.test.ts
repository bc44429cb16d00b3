import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ruleBody } from '../../../../src/domain/alerts/rule-event.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { isStorableText } from '../../../../src/domain/values/text.ts';

type RuleEvent = Parameters<typeof ruleBody>[0];

function anAlert(over: Partial<RuleEvent> = {}): RuleEvent {
  return {
    eventId: 'evt_1',
    occurredAt: new Date('2026-02-03T04:05:06.007Z'),
    alertId: 'alert_1',
    tokenMint: '123',
    tokenSymbol: 'Yes',
    condition: 'above',
    threshold: decimal('0.5'),
    thresholdField: 'price',
    firing: { price: decimal('0.51') },
    venue: 'polymarket',
    marketId: '0xabc',
    ...over,
  };
}

describe('ruleBody', () => {
  it('has the shape of the specification, plus venue and market, for an alert of the specification', () => {
    expect(JSON.parse(ruleBody(anAlert()))).toEqual({
      id: 'evt_1',
      type: 'price_alert',
      timestamp: '2026-02-03T04:05:06.007Z',
      data: {
        alertId: 'alert_1',
        tokenMint: '123',
        tokenSymbol: 'Yes',
        condition: 'above',
        targetPrice: 0.5,
        currentPrice: 0.51,
        venue: 'polymarket',
        marketId: '0xabc',
      },
    });
  });

  it('has the name of the alert', () => {
    expect(JSON.parse(ruleBody(anAlert({ name: 'half' }))).data).toMatchObject({ name: 'half' });
  });

  it('omits an unknown venue and market', () => {
    const { venue: _venue, marketId: _marketId, ...unknown } = anAlert();
    const { data } = JSON.parse(ruleBody(unknown));
    expect(Object.keys(data)).toEqual([
      'alertId',
      'tokenMint',
      'tokenSymbol',
      'condition',
      'targetPrice',
      'currentPrice',
    ]);
  });

  it.each([
    '0.8073684210526316',
    '0.30000000000000004',
    '0.12345678901234567890123',
    '0',
    '1',
    '123456789012345678901',
  ])('writes the price %s digit for digit, as a number', (price) => {
    const body = ruleBody(anAlert({ threshold: decimal(price), firing: { price: decimal(price) } }));
    expect(body).toContain(`"targetPrice":${price},"currentPrice":${price},`);
    expect(typeof JSON.parse(body).data.currentPrice).toBe('number');
  });

  it('is valid, storable JSON for any texts, and preserves them', () => {
    const wild = fc
      .array(fc.oneof(fc.constantFrom(0, 34, 92, 0xd800, 0xdfff, 0x2028), fc.integer({ min: 0, max: 0xffff })))
      .map((units) => String.fromCharCode(...units));
    const price = fc.double({ min: 0, max: 1e9, noNaN: true }).map((number) => ({ number, price: decimal(number) }));
    fc.assert(
      fc.property(wild, wild, wild, price, (tokenMint, tokenSymbol, marketId, { number, price }) => {
        const body = ruleBody(anAlert({ tokenMint, tokenSymbol, marketId, firing: { price } }));
        expect(isStorableText(body)).toBe(true);
        expect(JSON.parse(body).data).toMatchObject({ tokenMint, tokenSymbol, marketId, currentPrice: number });
      }),
    );
  });
});

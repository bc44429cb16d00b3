import { describe, expect, it } from 'vitest';
import { alertChange, newAlertBody } from '../../../api/pages/console/alert-fields.ts';
import { newWebhookBody } from '../../../api/pages/console/webhooks/fields.ts';

const alertOf = (notional: string) =>
  newAlertBody(new URLSearchParams({ condition: 'trade', tokenMint: 't', notional }));
const webhookOf = (maxPerSecond: string) => newWebhookBody(new URLSearchParams({ url: 'u', maxPerSecond }));

describe('a number of a form', () => {
  it.each([
    ['500', 500],
    ['0.125', 0.125],
    ['0,125', 0.125],
    ['12,5', 12.5],
    ['1000,25', 1_000.25],
  ])('may have a comma in place of the point: %s', (text, number) => {
    expect(alertOf(text)['notional']).toBe(number);
    expect(webhookOf(text)['maxPerSecond']).toBe(number);
  });

  it.each(['1,000', '10,000', '250,000'])('is rejected when its comma may separate thousands: %s', (text) => {
    const message = `write ${text.replace(',', '')}, or ${text.replace(',', '.')} with a point`;
    const stored = { id: 'a', condition: 'trade', notional: 5, status: 'active', createdAt: '' } as const;
    expect(() => alertOf(text)).toThrow(expect.objectContaining({ details: [{ path: 'notional', message }] }));
    expect(() => alertChange(new URLSearchParams({ notional: text }), stored)).toThrow(
      expect.objectContaining({ details: [{ path: 'notional', message }] }),
    );
    expect(() => webhookOf(text)).toThrow(expect.objectContaining({ details: [{ path: 'maxPerSecond', message }] }));
  });
});

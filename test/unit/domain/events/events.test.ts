import { describe, expect, it } from 'vitest';
import { eventText } from '../../../../src/domain/events/events.ts';

describe('eventText', () => {
  it('names the outcome and the market of an alert beside its facts', () => {
    const data = { tokenSymbol: 'Yes', condition: 'above', targetPrice: 0.6, currentPrice: 0.62 };
    expect(eventText('price_alert', { ...data, venue: 'kalshi', marketId: 'M-1' })).toEqual({
      subject: 'Yes',
      facts: 'above 0.6: 0.62',
      market: 'kalshi M-1',
    });
    expect(eventText('price_alert', data).market).toBe('');
  });

  it('states the change of a balance with its sign, and the balance after it', () => {
    const data = { wallet: '0x1', venue: 'kalshi', tokenMint: 't', previousBalance: 1, currentBalance: 3, change: 2 };
    expect(eventText('balance_change', data)).toEqual({ subject: 'kalshi 0x1 t', facts: '+2 to 3', market: '' });
    expect(eventText('balance_change', { ...data, currentBalance: 0, change: -1 }).facts).toBe('-1 to 0');
  });

  it('states a transfer, which has no size', () => {
    expect(eventText('transaction', { wallet: '0x1', venue: 'solana', type: 'transfer', transfers: [] })).toEqual({
      subject: 'solana 0x1',
      facts: 'transfer',
      market: '',
    });
  });

  it('states a trade whose side is unknown', () => {
    expect(eventText('trade', { tokenSymbol: 'No', size: 5, price: 0.4 }).facts).toBe('trade 5 at 0.4');
  });

  it('cannot control the terminal, and shortens long names', () => {
    const { subject } = eventText('trade', { tokenSymbol: `\x1b[2J${'x'.repeat(40)}` });
    expect(subject).toBe(`\ufffd[2J${'x'.repeat(15)}…`);
  });

  it('states the winner of a corrected result, or that none is left', () => {
    const data = { condition: 'status', status: 'resolved', previousStatus: 'resolved', correction: true };
    expect(eventText('price_alert', { ...data, winningOutcomeId: 'no' }).facts).toBe(
      'status resolved to resolved correction: no',
    );
    expect(eventText('market_status', data).facts).toBe('resolved to resolved correction: no winner');
  });

  it('is empty for a type of a later version', () => {
    expect(eventText('moon_landing', { at: 1 })).toEqual({ subject: '', facts: '', market: '' });
  });
});

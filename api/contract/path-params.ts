import { z } from 'zod';
import { alertExample } from './alert.ts';
import { apiKeyExample } from './api-key.ts';
import { archiveFileExample } from './archive/file.ts';
import { deliveryExample } from './delivery.ts';
import { walletExample } from './wallet.ts';
import { webhookExample } from './webhook.ts';
import { BACKTEST_ID_EXAMPLE, EVENT_ID_EXAMPLE, MARKET_ID_EXAMPLE } from './wire.ts';

/** The path parameters. No route rejects their form: a malformed id counts as an unknown id. */
export function pathParams(venues: readonly string[]): Readonly<Record<string, z.ZodString>> {
  const segment = z.string().min(1);
  return {
    venue: segment.meta({
      description: `One of ${[...venues, 'all'].map((name) => `\`${name}\``).join(', ')}; \`venue\` means \`all\`.`,
      example: 'all',
    }),
    market_id: segment.meta({ description: "The venue's id of a market.", example: MARKET_ID_EXAMPLE }),
    event_id: segment.meta({ description: "The venue's id of an event.", example: EVENT_ID_EXAMPLE }),
    webhook_id: segment.meta({ example: webhookExample.id }),
    delivery_id: segment.meta({ example: deliveryExample.id }),
    alert_id: segment.meta({ example: alertExample.id }),
    backtest_id: segment.meta({ example: BACKTEST_ID_EXAMPLE }),
    wallet_id: segment.meta({ example: walletExample.id }),
    key_id: segment.meta({ description: 'The id of a key, not the key.', example: apiKeyExample.id }),
    archive_file: segment.meta({ description: 'The name of a file of the archive.', example: archiveFileExample.file }),
    file: segment.meta({ description: 'A file of the documentation page.', example: 'page.css' }),
  };
}

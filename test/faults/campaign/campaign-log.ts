import { createWriteStream, mkdtempSync, rmSync, type WriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The record of a campaign, outside the processes: `ledger.jsonl` has a JSON line for each action and each received
 * request, and each process has a file with its output over all restarts. It stays when the campaign fails.
 */
export class CampaignLog {
  readonly folder = mkdtempSync(join(tmpdir(), 'oddswire-faults-'));
  readonly #files = new Map<string, WriteStream>();

  /** A line of the ledger: kind, time and details. */
  note(what: string, fields: Record<string, unknown> = {}): void {
    this.write('ledger.jsonl', JSON.stringify({ at: new Date().toISOString(), what, ...fields }));
  }

  /** A line of another file. */
  write(name: string, text: string): void {
    let file = this.#files.get(name);
    if (file === undefined) {
      file = createWriteStream(join(this.folder, name));
      this.#files.set(name, file);
    }
    file.write(`${text}\n`);
  }

  /** Closes the files, and removes them unless the campaign failed. */
  async close({ isKept }: { isKept: boolean }): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => new Promise<void>((resolve) => file.end(resolve))));
    if (!isKept) rmSync(this.folder, { recursive: true, force: true });
  }
}

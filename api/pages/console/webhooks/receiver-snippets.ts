/** `standard`: Standard Webhooks, with protection against a replay. `body`: `X-Webhook-Signature`. */
type SignatureKind = 'standard' | 'body';

interface SnippetOptions {
  signature: SignatureKind;
  events: readonly string[];
  /** The webhook is ordered: its requests name skipped events. */
  isOrdered: boolean;
}

export const LANGUAGES = ['typescript', 'python', 'go'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The text of a receiver. */
export function receiverSnippet(language: Language, options: SnippetOptions): string {
  return { typescript, python, go }[language](options);
}

const READ_BODY = `async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > 1024 * 1024) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
`;

function typescript({ signature, events, isOrdered }: SnippetOptions): string {
  const skipped = isOrdered
    ? `
    // Events of the same key that oddswire gave up, oldest first.
    const skipped = request.headers['x-webhook-skipped'];
    if (skipped !== undefined) console.warn('skipped', skipped);`
    : '';
  if (signature === 'standard') {
    return `import { createServer, type IncomingMessage } from 'node:http';
import { env } from 'node:process';
import { OddswireWebhookError, verifyWebhook } from '@oddswire/client';

const secret = env.WEBHOOK_SECRET;
if (!secret) throw new Error('set WEBHOOK_SECRET');

${READ_BODY}
createServer(async (request, response) => {
  try {
    const event = verifyWebhook({ payload: await read(request), headers: request.headers, secret });${skipped}
    // Events of this webhook: ${events.join(', ')}. One may arrive twice: store its id.
    console.log(event.type, event.id);
    response.writeHead(204).end();
  } catch (error) {
    // oddswire repeats an event until the answer is 2xx.
    const isRefused = error instanceof OddswireWebhookError;
    if (!isRefused) console.error(error);
    response.writeHead(isRefused ? 400 : 500).end();
  }
}).listen(Number(env.PORT ?? 8080));
`;
  }
  return `import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { env } from 'node:process';

const secret = env.WEBHOOK_SECRET;
if (!secret) throw new Error('set WEBHOOK_SECRET');

${READ_BODY}
function isSigned(body: Buffer, given: string): boolean {
  const expected = Buffer.from(\`sha256=\${createHmac('sha256', secret ?? '').update(body).digest('hex')}\`);
  const actual = Buffer.from(given);
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

createServer(async (request, response) => {
  try {
    const body = await read(request);
    if (!isSigned(body, String(request.headers['x-webhook-signature']))) {
      response.writeHead(400).end('bad signature');
      return;
    }
    const event = JSON.parse(body.toString()) as { id: string; type: string; data: object };${skipped}
    // Events of this webhook: ${events.join(', ')}. One may arrive twice: store its id.
    console.log(event.type, event.id);
    response.writeHead(204).end();
  } catch (error) {
    // oddswire repeats an event until the answer is 2xx.
    console.error(error);
    response.writeHead(500).end();
  }
}).listen(Number(env.PORT ?? 8080));
`;
}

function python({ signature, events, isOrdered }: SnippetOptions): string {
  const skipped = isOrdered
    ? `
        # Events of the same key that oddswire gave up, oldest first.
        if "X-Webhook-Skipped" in self.headers:
            print("skipped", self.headers["X-Webhook-Skipped"], flush=True)`
    : '';
  return `import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from oddswire import webhooks

SECRET = os.environ["WEBHOOK_SECRET"]


class Receiver(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > 1024 * 1024:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        try:
            event = webhooks.${signature === 'standard' ? 'verify' : 'verify_body'}(body, dict(self.headers), SECRET)
        except webhooks.WebhookError:
            self.send_response(400)
            self.end_headers()
            return${skipped}
        # Events of this webhook: ${events.join(', ')}. One may arrive twice: store its id.
        print(event.type, event.id, flush=True)
        self.send_response(204)
        self.end_headers()


ThreadingHTTPServer(("", int(os.environ.get("PORT", "8080"))), Receiver).serve_forever()
`;
}

function go({ signature, events, isOrdered }: SnippetOptions): string {
  const skipped = isOrdered
    ? `
		// Events of the same key that oddswire gave up, oldest first.
		if skipped := request.Header.Get("X-Webhook-Skipped"); skipped != "" {
			log.Println("skipped", skipped)
		}`
    : '';
  const [imports, check] = signature === 'standard' ? GO_STANDARD : GO_BODY;
  return `package main

import (
	"crypto/hmac"
	"crypto/sha256"
${imports.map((name) => `\t"${name}"\n`).join('')})

${check}
func main() {
	secret := os.Getenv("WEBHOOK_SECRET")
	if secret == "" {
		log.Fatal("set WEBHOOK_SECRET")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	http.HandleFunc("POST /", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
		if err != nil || !isSigned(secret, request.Header, body) {
			http.Error(response, "bad signature", http.StatusBadRequest)
			return
		}
		var event struct {
			ID   string          \`json:"id"\`
			Type string          \`json:"type"\`
			Data json.RawMessage \`json:"data"\`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(response, "not an event", http.StatusBadRequest)
			return
		}${skipped}
		// Events of this webhook: ${events.join(', ')}. One may arrive twice: store its id.
		log.Println(event.Type, event.ID)
		response.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe(":"+port, nil))
}
`;
}

const GO_STANDARD = [
  ['encoding/base64', 'encoding/json', 'io', 'log', 'net/http', 'os', 'strconv', 'strings', 'time'],
  `// isSigned checks webhook-signature (Standard Webhooks), within five minutes of its timestamp.
func isSigned(secret string, header http.Header, body []byte) bool {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil || time.Since(time.Unix(int64(seconds), 0)).Abs() > 5*time.Minute {
		return false
	}
	key := []byte(secret)
	if encoded, isGenerated := strings.CutPrefix(secret, "whsec_"); isGenerated {
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return false
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	isGood := false
	for _, given := range strings.Split(header.Get("Webhook-Signature"), " ") {
		isGood = hmac.Equal([]byte(expected), []byte(given)) || isGood
	}
	return isGood
}
`,
] as const;

const GO_BODY = [
  ['encoding/hex', 'encoding/json', 'io', 'log', 'net/http', 'os'],
  `// isSigned checks X-Webhook-Signature.
func isSigned(secret string, header http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(header.Get("X-Webhook-Signature")))
}
`,
] as const;

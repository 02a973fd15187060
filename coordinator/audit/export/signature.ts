// Signs deliveries as Standard Webhooks 1.0 describes: https://www.standardwebhooks.com
import { createHmac, randomBytes } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'

export const newSigningSecret = (): string => `${SECRET_PREFIX}${randomBytes(32).toString('base64')}`

/** @param now milliseconds since the epoch */
export function signDelivery(
  { id, body, now }: { id: string; body: string; now: number },
  secret: string,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

// Which failed connections the box command retries.
import t from 'tap'
import { toDisconnect } from '../../../cli/follow/disconnect.ts'
import { CliError, EXIT } from '../../../cli/output/exit-codes.ts'

const attempt = (status: number, code: string) => ({
  ...({ ok: false, status, retryAfter: null } as const),
  error: new CliError(EXIT.failed, 'The request was rejected.', { code }),
})

t.test('retries while the coordinator or the box is busy', async (t) => {
  for (const isFirst of [true, false]) {
    t.match(toDisconnect(attempt(429, 'rate_limited'), isFirst), { reason: String })
    t.match(toDisconnect(attempt(503, 'control_plane_unavailable'), isFirst), { reason: String })
    t.throws(() => toDisconnect(attempt(401, 'unauthorized'), isFirst), { code: 'unauthorized' })
  }
})

t.test('a new terminal above the limit fails; a lost one, which may still count, is retried', async (t) => {
  const full = attempt(429, 'customer_session_limit')
  t.throws(() => toDisconnect(full, true), { code: 'customer_session_limit' })
  t.match(toDisconnect(full, false), { reason: String })
})

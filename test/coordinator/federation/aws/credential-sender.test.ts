// The requests with which boxes get their credentials, when the coordinator stops.
import { EventEmitter } from 'node:events'
import t from 'tap'
import type { Tunnel, TunnelEvents } from '../../../../coordinator/agents/tunnel/types.ts'
import { CredentialSender } from '../../../../coordinator/federation/aws/credential-sender.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createTestClock } from '../../../support/workspace.ts'

t.test('stops also while requests wait for agents that do not respond', async (t) => {
  const events = new EventEmitter<TunnelEvents>()
  let calls = 0
  const tunnel = {
    call: ({ signal }: { signal: AbortSignal }) => {
      calls += 1
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  }
  const sender = new CredentialSender({
    loader: {
      loadProfiles: async () => ({ workspaceId: 'ws_1', hasRoles: true, isRestricted: false, profiles: [] }),
      issueToken: () => Promise.reject(new Error('no token is needed')),
    },
    tunnels: Object.assign(events, { local: () => tunnel as unknown as Tunnel }),
    clock: createTestClock(),
    log: silentLog,
    isEnabled: true,
  })
  sender.start()
  for (let n = 0; n < 40; n += 1) events.emit('connected', { boxId: `box ${n}` } as Tunnel)
  await waitUntil('the most requests at once are in flight', async () => calls === 16)
  await sender.close()
  t.equal(calls, 16, 'those that waited are not sent')
})

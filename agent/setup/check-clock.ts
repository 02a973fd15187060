// Compares the clock of this machine with the clock of the coordinator.
import type { SelectProxy } from '../tunnel/proxy.ts'
import { describeConnectionError } from './connection-error.ts'
import { sendJson } from './request.ts'
import { SetupError } from './setup-error.ts'

const MAX_DIFFERENCE_MS = 5 * 60_000
const TIMEOUT_MS = 20_000

/** @throws SetupError when the clocks differ, or when the coordinator cannot be reached */
export async function checkClock(url: string, selectProxy: SelectProxy, now = Date.now): Promise<void> {
  const request = { method: 'GET', path: '/healthz', timeoutMs: TIMEOUT_MS } as const
  const { date } = await sendJson(url, request, selectProxy).catch((error: Error) => {
    throw new SetupError(describeConnectionError(url, error))
  })
  if (date === null) return
  const difference = now() - date
  if (Math.abs(difference) <= MAX_DIFFERENCE_MS) return
  const minutes = Math.round(Math.abs(difference) / 60_000)
  throw new SetupError(
    `The clock of this machine is wrong: it is ${minutes} minutes ${difference > 0 ? 'ahead of' : 'behind'} the clock of the coordinator. Set the clock, for example with: timedatectl set-ntp true`,
  )
}

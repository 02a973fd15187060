// Finds a terminal session by its name or a unique prefix of its name.

import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { EdgeClient } from '../connection/client.ts'
import { listSessions } from './create-session.ts'

/** Returns `typed` if no session matches: an exited session is not listed. @throws CliError when several match */
export async function findSessionName(edge: EdgeClient, typed: string): Promise<string> {
  const { sessions } = await listSessions(edge)
  const found = findByPrefix(sessions, typed, {
    getId: ({ session }) => session,
    describe: ({ command }) => command ?? '(login shell)',
    kind: `terminal sessions of ${edge.boxName}`,
  })
  return found?.session ?? typed
}

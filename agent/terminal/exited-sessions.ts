// Exited sessions, from which clients that reconnect get the rest of the output and the exit, and later the exit only.
import type { ExitedTerminal, ExitRecords } from './exit-records.ts'
import type { Session } from './session.ts'

export type ExitedSessions = {
  /** A session whose output is retained. */
  get(name: string): Session | undefined
  /** A session of the name that the client may attach to, to get the exit. */
  find(name: string, client: string | undefined): ExitedTerminal | undefined
  has(name: string): boolean
  /** Forgets the output of an earlier session of the same name, and that of this one after some time. */
  add(session: Session): void
  /** Forgets the sessions. Resolves when their hosts are not needed any more. @param except sessions of the next agent */
  close(except: (session: Session) => boolean): Promise<void>
}

/** Output of exited sessions is retained in memory. */
const MAX_SESSIONS = 16

export function createExitedSessions(retentionMs: number, records: ExitRecords): ExitedSessions {
  const sessions = new Map<string, Session>()
  const releases = new Set<Promise<void>>()

  function forget(session: Session | undefined): void {
    if (session === undefined || sessions.get(session.name) !== session) return
    sessions.delete(session.name)
    const exit = session.describeExit()
    if (exit !== null) records.add(exit)
    const release = session.release().finally(() => releases.delete(release))
    releases.add(release)
  }

  return {
    get: (name) => sessions.get(name),
    find(name, client) {
      const retained = sessions.get(name)
      const isRetained =
        retained && (client === undefined || retained.hadClient(client) || !retained.hadClient())
      return isRetained ? retained : records.find(name, client)
    },
    has: (name) => sessions.has(name) || records.has(name),
    add(session) {
      forget(sessions.get(session.name))
      sessions.set(session.name, session)
      if (sessions.size > MAX_SESSIONS) forget(sessions.values().next().value)
      setTimeout(() => forget(session), retentionMs).unref()
    },
    async close(except) {
      for (const session of [...sessions.values()]) if (!except(session)) forget(session)
      await Promise.all(releases)
      await records.close()
    },
  }
}

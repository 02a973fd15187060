// Opens the port of the coordinator, also when a process of a box has taken the port while no coordinator was running.

import type { Logger } from 'pino'
import { listLocalBoxRegions } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { type Listening, listen } from '../http/listen.ts'
import { listPortListeners } from '../providers/local/port-listeners.ts'
import { openMachineStoppers } from '../providers/open-providers.ts'
import type { Config } from './config.ts'
import { takeInheritedSocket } from './inherited-socket.ts'

/**
 * Another box may take the port meanwhile. Where boxes have no user ids of their own, a process may also claim to belong to
 * another box, and is not stopped with it.
 */
const MAX_ROUNDS = 10

type ListenOnPortOptions = {
  config: Config
  db: Db
  /** See DataDirectory. */
  host: string
  log: Pick<Logger, 'debug' | 'info' | 'warn'>
}

/**
 * Uses the socket of the service manager, which stays open while no coordinator runs, where there is one. Otherwise stops
 * the boxes whose processes listen on the port; the lifecycle starts them again later.
 * @throws StartError when the port is taken by a process that is in no box, or still taken after MAX_ROUNDS stops
 */
export async function listenOnPort({ config, db, host, log }: ListenOnPortOptions): Promise<Listening> {
  const inheritedFd = takeInheritedSocket(process.env, process.pid)
  if (inheritedFd !== undefined) {
    const listening = await listen({ ...config.listen, fd: inheritedFd }, config.limits)
    log.info({ url: listening.url }, 'listening on the socket of the service manager, not on BOXWOOD_LISTEN')
    return listening
  }
  for (let round = 1; ; round++) {
    try {
      return await listen(config.listen, config.limits)
    } catch (error) {
      const isTaken = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
      if (!isTaken || round > MAX_ROUNDS) throw error
      const stoppers = await openMachineStoppers(await listLocalBoxRegions(db, host), {
        dataDir: config.dataDir,
        log,
      })
      const boxIds = await stoppers.stopMachinesOf(listPortListeners(config.listen.port))
      if (boxIds.length === 0) throw error
      for (const boxId of boxIds)
        log.warn(
          { boxId, port: config.listen.port },
          'a process of the box listened on the port of the coordinator; stopped the box',
        )
    }
  }
}

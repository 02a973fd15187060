// The balance of agents between the coordinators of a database.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { AgentConnections } from '../tunnel/agent-connections.ts'
import { Balancer } from './balancer.ts'
import { moveAllAway } from './leave.ts'

export type BalanceModuleContext = ModuleBase & {
  replica: Replica
  agentConnections: Pick<AgentConnections, 'listLocal' | 'moveAway' | 'moveAwayWhenUnused' | 'refuse'>
  limiter: {
    /** Whether a request or a connection of a client uses the box. */
    isInUse(boxId: string): boolean
  }
  pauseGate: {
    /** undefined: no pause of the box is being decided. */
    wait(boxId: string): Promise<void> | undefined
  }
}

const TICK_MS = 1000
/** Longer than the interval of the health checks of a proxy: then it sends agents to other coordinators. */
const NOTICE_MS = 2_500

/** This module is after those whose requests use the tunnels. The only coordinator of a database has no other one to balance with. */
export function balanceModule(context: BalanceModuleContext): Module {
  const { replica, agentConnections, limiter, pauseGate, log } = context
  const { fleet, events } = replica
  if (fleet === null) return {}
  const listBoxIds = () => [...agentConnections.listLocal()].map(({ boxId }) => boxId)
  const isInUse = (boxId: string) => limiter.isInUse(boxId) || pauseGate.wait(boxId) !== undefined
  const balancer = new Balancer({
    listBoxIds,
    countOthers: () => fleet.members.flatMap(({ id, tunnels }) => (id === replica.id ? [] : (tunnels ?? []))),
    moveAway: (boxId, reconnectAfterMs) =>
      !isInUse(boxId) && agentConnections.moveAway(boxId, reconnectAfterMs),
    clock: { now: () => performance.now() },
    random: Math.random,
    log,
  })
  const onMembersRead = () => balancer.onCounts()
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    fleet.countTunnels(null)
    events.off('membersRead', onMembersRead)
    clearInterval(timer)
  }
  return {
    async start() {
      fleet.countTunnels(() => [...agentConnections.listLocal()].length)
      events.on('membersRead', onMembersRead)
      timer = setInterval(() => balancer.tick(), TICK_MS).unref()
    },
    async leave() {
      stop()
      agentConnections.refuse()
      await fleet
        .stopAccepting()
        .catch((err: unknown) =>
          log.warn({ err }, 'the other coordinators do not know yet that this one stops'),
        )
      await sleep(NOTICE_MS)
      const boxIds = listBoxIds()
      const moveAway = agentConnections.moveAwayWhenUnused
      const remaining = await moveAllAway({ boxIds, isInUse, moveAway })
      log.info({ agents: boxIds.length, remaining }, 'moved the agents to other coordinators')
    },
    beginStop: stop,
    close: { name: 'stop moving agents', run: stop },
  }
}

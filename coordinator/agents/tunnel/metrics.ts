// Metrics of the connections of agents.
import type { Metric } from '../../http/module.ts'
import type { Tunnels } from './types.ts'

export function createTunnelMetrics(tunnels: Pick<Tunnels, 'on'>): readonly Metric[] {
  const connectedBoxIds = new Set<string>()
  const counts = { connects: 0, disconnects: 0 }
  tunnels.on('connected', ({ boxId }) => {
    connectedBoxIds.add(boxId)
    counts.connects += 1
  })
  tunnels.on('disconnected', (boxId) => {
    connectedBoxIds.delete(boxId)
    counts.disconnects += 1
  })
  return [
    {
      type: 'counter',
      name: 'boxwood_agent_connects_total',
      help: 'Connections of agents that were accepted.',
      collect: () => new Map([['', counts.connects]]),
    },
    {
      type: 'counter',
      name: 'boxwood_agent_disconnects_total',
      help: 'Agents that disconnected and had no newer connection.',
      collect: () => new Map([['', counts.disconnects]]),
    },
    {
      type: 'gauge',
      name: 'boxwood_agents_connected',
      help: 'Boxes whose agent is connected.',
      collect: () => new Map([['', connectedBoxIds.size]]),
    },
  ]
}

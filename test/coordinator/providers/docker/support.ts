// Machines in a Docker engine without the files of the agent, whose inits therefore end at once.
import type { AgentVolume } from '../../../../coordinator/providers/docker/agent-volume.ts'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { readEngineInfo } from '../../../../coordinator/providers/docker/engine-info.ts'
import { createEngineImages } from '../../../../coordinator/providers/docker/images/images.ts'
import { EngineMachines } from '../../../../coordinator/providers/docker/machines.ts'
import { Networks } from '../../../../coordinator/providers/docker/networks.ts'

export function createMachines(engine: Engine) {
  const images = createEngineImages(engine, {
    defaultImage: 'busybox',
    env: { DOCKER_CONFIG: '/nonexistent' },
  })
  const machines = new EngineMachines({
    engine,
    images,
    agentVolume: { name: 'agent', ensure: async () => {} } as unknown as AgentVolume,
    networks: new Networks(engine, ['10.213.0.0/16']),
    readInfo: () => readEngineInfo(engine, false),
    socketDir: null,
    agentSettings: {},
  })
  return { images, machines }
}

export const createSpec = (boxId: string) =>
  ({
    boxId,
    hostname: 'box',
    tier: 'nano',
    coordinatorUrl: 'http://127.0.0.1:1',
    image: 'busybox',
  }) as const

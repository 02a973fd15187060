// Brings the running boxes of a region up to date after a start of the coordinator: the volume with the build of the agent, and
// the address of the coordinator. The agents continue until they are restarted.

import type { Region } from '../../../shared/tiers.ts'
import { InstanceFiles } from './files.ts'
import type { IncusHost } from './incus-host.ts'
import { isComplete } from './instances.ts'
import { createAgentDevices, PATHS } from './machine.ts'
import { pickChanges } from './machines.ts'
import { LABELS } from './names.ts'
import type { Server } from './server.ts'

export type UpdateOptions = {
  host: IncusHost
  region: Region
  server: Server
  /** Runs the work when no other call works on the box. */
  run(boxId: string, work: () => Promise<void>): Promise<void>
}

export async function updateBoxes({ host, region, server, run }: UpdateOptions): Promise<void> {
  const { instances, client, access, options } = host
  const { log } = options
  for (const { name, config } of await instances.list({ [LABELS.role]: 'box', [LABELS.region]: region })) {
    const boxId = config[LABELS.box] ?? ''
    if (config['security.idmap.isolated'] === 'false') host.protections.reportSharedUserIds()
    await run(boxId, async () => {
      const instance = await instances.load(name)
      // The start of a stopped box brings it up to date.
      if (instance === null || !isComplete(instance) || !['Running', 'Frozen'].includes(instance.status))
        return
      const agentVolume = await host.agentVolumes.ensure(server, instance.location)
      const socket = access.createDevice(server, instance.location)
      const wanted = createAgentDevices({ server, agentVolume, socket })
      const devices = pickChanges(instance.devices, wanted)
      if (Object.keys(devices).length > 0) await instances.patch(name, { devices })
      await new InstanceFiles(client, name).write(PATHS.url, access.url)
    }).catch((err: unknown) => log.warn({ boxId, err }, 'failed to bring a box in Incus up to date'))
  }
}

// The provider of enrolled machines. The coordinator does not create, start or stop them: they belong to their users, and
// their agents connect whenever they run.
import { Readable } from 'node:stream'
import { PermanentProviderError, type Provider } from '../provider.ts'

/** The requests that would need these calls are refused before (coordinator/boxes/refuse-machines.ts). */
function refuse(call: string): PermanentProviderError {
  return new PermanentProviderError(`The coordinator cannot ${call} an enrolled machine.`)
}

const rejectCall = (call: string) => async (): Promise<never> => {
  throw refuse(call)
}

export const machineProvider: Provider = {
  name: 'machines',
  describe: () => 'enrolled machines',
  create: rejectCall('create'),
  start: rejectCall('start'),
  stop: rejectCall('stop'),
  freeze: rejectCall('freeze'),
  capture: rejectCall('capture the files of'),
  copyFiles: rejectCall('copy an archive of'),
  removeArchive: async () => undefined,
  removeArchives: async () => undefined,
  readArchive: () => Readable.from([]).destroy(refuse('read an archive of')),
  writeArchive: rejectCall('write an archive of'),
  /** Whether a machine runs is known only from its agent. A machine that is not connected may run too. */
  inspect: async () => 'running',
  /** The machine keeps its files. Its agent uninstalls itself: see boxes/lifecycle/uninstall-agent.ts. */
  destroy: async () => undefined,
  close: async () => undefined,
}

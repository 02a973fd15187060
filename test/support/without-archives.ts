// The methods of a provider in tests and benchmarks that neither freeze machines nor store archives.
import type { Provider } from '../../coordinator/providers/provider.ts'

const unexpected = (): never => {
  throw new Error('This provider has no archives.')
}

export const withoutArchives: Pick<
  Provider,
  'freeze' | 'capture' | 'copyFiles' | 'removeArchive' | 'removeArchives' | 'readArchive' | 'writeArchive'
> = {
  freeze: async () => false,
  capture: unexpected,
  copyFiles: unexpected,
  removeArchive: async () => undefined,
  removeArchives: async () => undefined,
  readArchive: unexpected,
  writeArchive: unexpected,
}

// The engine of the docker and podman regions, which both have the Docker Engine API.
import { PermanentProviderError } from '../provider.ts'
import type { OpenProviderHost } from '../provider-host.ts'

export const openEngineHost =
  (kind: 'docker' | 'podman'): OpenProviderHost =>
  async () => {
    throw new PermanentProviderError(`The provider ${kind} is not available yet.`)
  }

// The Incus server or cluster of the incus regions.
import { PermanentProviderError } from '../provider.ts'
import type { OpenProviderHost } from '../provider-host.ts'

export const openIncusHost: OpenProviderHost = async () => {
  throw new PermanentProviderError('The provider incus is not available yet.')
}

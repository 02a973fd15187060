// The secrets of boxes, in memory.
import { EventEmitter } from 'node:events'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import type { BrokerEvents, SecretBroker } from '../../../coordinator/secrets/types.ts'
import { BROKER_TEST_HOST, coversHost } from '../../../shared/secret-hosts.ts'
import { DEFAULT_SECRET_LOCATIONS, type SecretLocation } from '../../../shared/secret-locations.ts'

export type FakeMount = {
  secretId: string
  placeholder: string
  /** null: it cannot be decrypted. */
  value: string | null
  hosts: string[]
  /** Default: header. */
  in?: readonly SecretLocation[]
}

export class FakeSecrets implements SecretBroker {
  readonly events = new EventEmitter<BrokerEvents>()
  /** By box. Changes apply to the next request. */
  readonly mounts = new Map<string, FakeMount[]>()
  /** How often a value was decrypted. */
  opened = 0
  readonly uses: { secretId: string; boxId: string; host: string }[] = []

  mount(boxId: string, mount: FakeMount): FakeMount {
    this.mounts.set(boxId, [...(this.mounts.get(boxId) ?? []), mount])
    return mount
  }

  unmount(boxId: string, { secretId, hosts }: FakeMount): void {
    const left = (this.mounts.get(boxId) ?? []).filter((mount) => mount.secretId !== secretId)
    this.mounts.set(boxId, left)
    this.events.emit('cut', { boxId, patterns: hosts })
  }

  async find(boxId: string, host: string) {
    const mounts = this.mounts.get(boxId) ?? []
    const covering = mounts.filter(({ hosts }) => hosts.some((pattern) => coversHost(pattern, host)))
    const found = host === BROKER_TEST_HOST ? mounts : covering
    if (found.length === 0) return null
    const secrets = covering.map(
      ({ secretId, placeholder, value, in: locations = DEFAULT_SECRET_LOCATIONS }) => ({
        secretId,
        name: secretId.toUpperCase(),
        placeholder,
        in: locations,
        version: value ?? 'damaged',
        open: () => {
          this.opened += 1
          return value === null ? null : new SecretValue(value)
        },
      }),
    )
    return { workspaceId: 'ws_1', hostname: 'fig', secrets }
  }

  recordUse(use: { secretId: string; boxId: string; host: string }): void {
    this.uses.push(use)
  }
}

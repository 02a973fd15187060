// What the edge needs of secrets: it substitutes the values in the requests of boxes.
import type { EventEmitter } from 'node:events'
import type { SecretLocation } from '../../shared/secret-locations.ts'
import type { SecretValue } from '../base/sealing/secret-value.ts'

/** A mounted secret that covers a host. */
export type BrokeredSecret = {
  secretId: string
  name: string
  placeholder: string
  /** Where the value is used in a request. */
  in: readonly SecretLocation[]
  /** Identifies the stored value: a new value of the secret has another version. */
  version: string
  /** Decrypts the value. null: the stored value cannot be decrypted. */
  open(): SecretValue | null
}

/** A box whose secrets cover a host. */
export type BrokeredHost = {
  workspaceId: string
  /** The name of the box, for the usage. */
  hostname: string
  secrets: readonly BrokeredSecret[]
}

/** A change after which connections of the box to these hosts must be closed, also where another secret covers them. */
export type BrokerCut = { boxId: string; patterns: readonly string[] }

export interface SecretBroker {
  /**
   * The mounts of the box whose hosts cover the host, read for each request; null: none does, or the box is restricted, deleted
   * or unknown.
   * @param host in lowercase ASCII
   */
  find(boxId: string, host: string): Promise<BrokeredHost | null>
  /** Counts a forwarded request with the value. Written each second. */
  recordUse(use: { secretId: string; boxId: string; host: string }): void
  readonly events: EventEmitter<BrokerEvents>
}

export type BrokerEvents = {
  cut: [BrokerCut]
  /** Cuts may have been missed: the mounts of open connections must be read again. */
  missed: []
}

/** A certificate with its key, PEM, for the TLS server of a host. */
export type LeafCertificate = { key: string; certificate: string; expiresAt: number }

export interface WorkspaceAuthorities {
  /** PEM. Creates the authority of the workspace when it has none. */
  getCertificate(workspaceId: string): Promise<string>
  /** Cached until an hour before its expiry. */
  getLeaf(workspaceId: string, host: string): Promise<LeafCertificate>
}

// What the environments and the secrets add to a box when it is created. The modules of both implement it.
import type { BoxDetail } from '../../shared/api/boxes.ts'
import type { EnvironmentToggles } from '../../shared/api/environments.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { EnvVar } from './present.ts'

/** A mount that a fork or a snapshot passes on. */
export type CarriedMount = { secretId: string; envName: string }

/** The version of an environment that a box uses. */
export type PinnedEnvironment = {
  id: string
  versionNo: number
  vars: readonly EnvVar[]
  /** The image of new boxes; null: none. */
  image: string | null
  toggles: EnvironmentToggles
}

export type EnvironmentChoice = {
  /** Id or name; null: none; undefined: that of the source, or the default one for a box without a source. */
  environment: string | null | undefined
  source: Pick<SnapshotRow, 'environment_id' | 'environment_version_no'> | null
}

export interface BoxEnvironments {
  /** Locks the environment, so that its version is not deleted meanwhile. Throws not_found. null: none. */
  choose(trx: Trx, actor: Actor, choice: EnvironmentChoice): Promise<PinnedEnvironment | null>
  /** The secret files that a box with the files of the snapshot has from the environment of its source. */
  listFilePaths(trx: Trx, source: NonNullable<EnvironmentChoice['source']>): Promise<string[]>
  /** Records the repositories that are cloned on the new box. */
  onCreate(trx: Trx, box: BoxRow): Promise<void>
  describe(db: Db, box: BoxRow): Promise<BoxDetail['environment']>
}

export interface BoxSecrets {
  /**
   * Mounts what the source had and what the channels of the environment name, as far as grants allow it, under variables that
   * have no secret yet. No-op for a restricted box. Also for a box that exists, whose row the caller has locked.
   * @returns the value of the column mount_vars for all mounts of the box, which the caller writes
   */
  onCreate(
    trx: Trx,
    box: BoxRow,
    options: { actor: Actor; carried: readonly CarriedMount[]; toggles: EnvironmentToggles | null },
  ): Promise<string>
  /** Unmounts what no grant allows the new owner of a box. The caller has locked the box, and passes the row after the change. */
  onOwnerChange(trx: Trx, box: BoxRow, by: { actor: Actor; now: number }): Promise<void>
  /** The mounts of a box, for a snapshot or a fork. */
  listCarried(trx: Trx, boxId: string): Promise<CarriedMount[]>
  /**
   * Mounts a secret under its name on a box, whose row the caller has locked, unless the box has the secret.
   * @returns problem: why the box may not use the secret, as a part of a sentence
   */
  mountForRepo(
    trx: Trx,
    box: BoxRow,
    secretName: string,
  ): Promise<{ placeholder: string; hosts: readonly string[] } | { problem: string }>
}

// What other directories need of environments.
import type { SecretValue } from '../base/sealing/secret-value.ts'
import type { BoxEnvironments } from '../boxes/box-hooks.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import type { EnvironmentConfig } from './config.ts'

export type EnvironmentVersion = {
  environmentId: string
  versionNo: number
  workspaceId: string
  config: EnvironmentConfig
}

/** A secret file, as it is written on a box. */
export type OpenedFile = {
  path: string
  /** Four octal digits. */
  mode: string
  /** Base64. */
  content: SecretValue
}

export interface EnvironmentVersions {
  /** undefined: the version does not exist. A version that a box or a snapshot uses exists. */
  loadVersion(
    environmentId: string,
    versionNo: number,
    db?: Db | Trx,
  ): Promise<EnvironmentVersion | undefined>
  /** Decrypts the files of a version. */
  openFiles(version: EnvironmentVersion): Promise<OpenedFile[]>
}

/** The service of the context. */
export type Environments = BoxEnvironments & EnvironmentVersions

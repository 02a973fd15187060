// The secret that signs in the first owner on the machine of a coordinator. It is the same at all coordinators of the database.
import { randomBytes } from 'node:crypto'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import {
  ensureSealedValue,
  readSealedValue,
  replaceSealedValue,
  type SealedValues,
} from '../../deployment/values.ts'

export type OwnerSecret = {
  /**
   * Creates the secret at the start of a coordinator.
   * @param isOnlyCoordinator no other coordinator uses the database: the secret of earlier starts is void
   */
  prepare(isOnlyCoordinator: boolean): Promise<void>
  /** Reads the secret from the database for each use: another coordinator may have replaced it. */
  read(): Promise<string>
}

const NAME = 'owner_secret'

const createSecret = () => new SecretValue(`bwo_${randomBytes(32).toString('base64url')}`)

export const createOwnerSecret = (values: SealedValues): OwnerSecret => ({
  async prepare(isOnlyCoordinator) {
    if (isOnlyCoordinator) await replaceSealedValue(values, NAME, createSecret())
    else await ensureSealedValue(values, NAME, createSecret)
  },
  async read() {
    const secret = await readSealedValue(values, NAME)
    if (secret === null) throw new Error('The owner has no secret: the coordinator has not prepared one.')
    return secret.reveal()
  },
})

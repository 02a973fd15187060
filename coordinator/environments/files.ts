// The contents of secret files, which are stored encrypted.
import type { EnvironmentFileInput } from '../../shared/api/environments.ts'
import { newId } from '../../shared/ids.ts'
import { type Keyring, SealedValueError } from '../base/sealing/keyring.ts'
import { SecretValue } from '../base/sealing/secret-value.ts'
import type { Db } from '../db/open.ts'
import type { EnvironmentFileRow, EnvironmentRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { ConfigFile } from './config.ts'
import { findFiles, insertFiles } from './store/versions.ts'

export type EnvironmentFiles = {
  /** Stores the contents, except those that `current` has under the same path. */
  write(
    trx: Trx,
    environment: Pick<EnvironmentRow, 'id' | 'workspace_id'>,
    inputs: readonly EnvironmentFileInput[],
    options: { current: readonly ConfigFile[]; now: number },
  ): Promise<ConfigFile[]>
  /** The contents in base64, by the ids of the files. */
  read(db: Db | Trx, fileIds: readonly string[]): Promise<Map<string, SecretValue>>
}

const DEFAULT_MODE = '0600'

export function createEnvironmentFiles(keyring: Pick<Keyring, 'seal' | 'open'>): EnvironmentFiles {
  const open = ({ id, workspace_id: workspaceId, content }: EnvironmentFileRow): SecretValue =>
    keyring.open(content, { workspaceId, rowId: id })

  async function read(db: Db | Trx, fileIds: readonly string[]): Promise<Map<string, SecretValue>> {
    const rows = await findFiles(db, fileIds)
    return new Map(rows.map((row) => [row.id, open(row)]))
  }

  /** Whether the stored content is this one. A damaged content is not: a request that writes the file replaces it. */
  function isContent(row: EnvironmentFileRow | undefined, value: SecretValue): boolean {
    try {
      return row !== undefined && open(row).reveal() === value.reveal()
    } catch (error) {
      if (error instanceof SealedValueError) return false
      throw error
    }
  }

  return {
    read,
    async write(trx, { id: environmentId, workspace_id: workspaceId }, inputs, { current, now }) {
      const byPath = new Map(current.map((file) => [file.path, file]))
      const candidates = inputs.flatMap(({ path }) => byPath.get(path)?.fileId ?? [])
      const stored = new Map((await findFiles(trx, candidates)).map((row) => [row.id, row]))
      const rows: EnvironmentFileRow[] = []
      const files = inputs.map((input): ConfigFile => {
        const { path, mode: givenMode = DEFAULT_MODE } = input
        const mode = givenMode.padStart(4, '0')
        const content = decode(input)
        const value = new SecretValue(content.toString('base64'))
        const existing = byPath.get(path)
        if (existing && isContent(stored.get(existing.fileId), value))
          return existing.mode === mode ? existing : { ...existing, mode, updatedAt: now }
        const id = newId('environmentFile')
        const { sealed, keyId } = keyring.seal(value, { workspaceId, rowId: id })
        rows.push({
          id,
          workspace_id: workspaceId,
          environment_id: environmentId,
          size: content.length,
          content: sealed,
          key_id: keyId,
          created_at: now,
        })
        return { path, mode, fileId: id, size: content.length, updatedAt: now }
      })
      await insertFiles(trx, rows)
      return files
    },
  }
}

const decode = ({ content, contentBase64 }: EnvironmentFileInput): Buffer =>
  content === undefined ? Buffer.from(contentBase64 ?? '', 'base64') : Buffer.from(content)

// The id of a host in the labels of what its coordinators create in engines: two hosts that use one engine do not remove what the
// other one has created.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { StartError } from '../base/start-error.ts'
import type { Db } from '../db/open.ts'
import { takeOverFile } from '../deployment/take-over-file.ts'
import { ensureValue } from '../deployment/values.ts'

/** The file of the data directory in which earlier versions stored the id. A backup of these versions has it. */
export const DEPLOYMENT_ID_FILE = 'deployment-id'

/** Creates the id at the first start. Throws StartError. */
export async function openDeploymentId({
  db,
  host,
  dataDir,
}: {
  db: Db
  /** See DataDirectory. */
  host: string
  dataDir: string
}): Promise<string> {
  const path = join(dataDir, DEPLOYMENT_ID_FILE)
  const file = {
    path,
    parse(text: string) {
      if (/^[0-9a-f]{16}$/.test(text)) return text
      throw new StartError(
        `${path} is damaged. Restore it from a backup, or remove it when no box uses an engine.`,
      )
    },
    consequence:
      'With the id of the database, the boxes of the id in the file are not found in their engine.',
  }
  return takeOverFile(file, (id) =>
    ensureValue(db, `deployment_id ${host}`, () => id ?? randomBytes(8).toString('hex')),
  )
}

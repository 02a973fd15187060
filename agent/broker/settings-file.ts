// What the broker keeps across restarts of the agent: programs that outlive the agent continue to use its listener.

import { join } from 'node:path'
import * as z from 'zod'
import { parseJson } from '../../shared/parse-json.ts'
import { replaceFile } from '../durable-file.ts'
import { readStateFile } from '../state-file.ts'

const settingsSchema = z.object({
  port: z.int().min(1).max(65_535),
  credential: z.string().regex(/^[0-9a-f]{48}$/),
  /** PEM. */
  certificate: z.string(),
  /** The hosts of the mounted secrets. null: no secret is mounted. */
  hosts: z.array(z.string()).nullable(),
})
export type BrokerSettings = z.infer<typeof settingsSchema>

const MAX_BYTES = 8 * 1024 * 1024

export type SettingsFile = {
  /** null: no secret has been mounted yet, or the file is not valid: the user of the box can change it. */
  read(): BrokerSettings | null
  write(settings: BrokerSettings): Promise<void>
}

export function createSettingsFile(dir: string): SettingsFile {
  const path = join(dir, 'broker.json')
  return {
    read() {
      const parsed = settingsSchema.safeParse(parseJson(readStateFile(path, MAX_BYTES)))
      return parsed.success ? parsed.data : null
    },
    write: (settings) => replaceFile(path, JSON.stringify(settings), { flush: true }),
  }
}

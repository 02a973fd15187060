// What the coordinator has recorded about the isolation of boxes, as JSON in the data directory.

import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { writeAtomically } from './parts/write-atomically.ts'
import { PermanentProviderError } from './provider.ts'

/**
 * Returns null when the file does not exist. Throws PermanentProviderError when it cannot be read or is damaged.
 * @param accepted what an operator accepts who deletes the file, as the end of a sentence
 */
export function readRecordFile<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  accepted: string,
): z.infer<Schema> | null {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new PermanentProviderError(
      `${file} is damaged: ${error instanceof z.ZodError ? 'unknown content' : (error as Error).message}. Delete it to accept ${accepted}.`,
      { cause: error },
    )
  }
}

export const writeRecordFile = (file: string, record: object): Promise<void> =>
  writeAtomically(file, `${JSON.stringify(record)}\n`, { isDurable: true })

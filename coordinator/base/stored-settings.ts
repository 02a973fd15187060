// The settings of an earlier start that later starts use: settings.json in the data directory.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { validationMessage } from '../../shared/validation-message.ts'
import { writePrivateFile } from './data-directory.ts'
import { ConfigError } from './define-settings.ts'

/** Fields of a newer version are kept. */
const settingsSchema = z.looseObject({
  /** As BOXWOOD_LISTEN. */
  listen: z.string().optional(),
})
type Settings = z.infer<typeof settingsSchema>

type Environment = Readonly<Record<string, string | undefined>>

const MAX_BYTES = 64 * 1024

export const getSettingsFile = (dataDir: string): string => join(dataDir, 'settings.json')

/**
 * Sets the variables that are not set, or empty, to the stored settings.
 * @param env with BOXWOOD_DATA @throws ConfigError when the file is not valid
 */
export function withStoredSettings<E extends Environment>(env: E): E {
  const { listen } = readSettings(env.BOXWOOD_DATA ?? '')
  return listen === undefined || env.BOXWOOD_LISTEN ? env : { ...env, BOXWOOD_LISTEN: listen }
}

/** Stores the settings that the variables have. Call it when a start with them has succeeded. */
export async function storeSettings(dataDir: string, { BOXWOOD_LISTEN: listen }: Environment): Promise<void> {
  const settings = readSettings(dataDir)
  if (!listen || settings.listen === listen) return
  await writePrivateFile(getSettingsFile(dataDir), `${JSON.stringify({ ...settings, listen }, null, 2)}\n`)
}

function readSettings(dataDir: string): Settings {
  const file = getSettingsFile(dataDir)
  const text = readText(file)
  if (text === null) return {}
  try {
    return settingsSchema.parse(JSON.parse(text))
  } catch (error) {
    const problem =
      error instanceof z.ZodError ? validationMessage(error.issues, 'content') : 'the content is not JSON'
    throw new ConfigError(`${file} is not valid: ${problem}. Correct or delete it.`)
  }
}

/** null: no file. Another user may own the directory, which is checked later: a FIFO must not block. */
function readText(file: string): string | null {
  let fd: number
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new ConfigError(`${file} cannot be read: ${message}.`)
  }
  try {
    const stats = fstatSync(fd)
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(fd, 'utf8') : ''
  } finally {
    closeSync(fd)
  }
}

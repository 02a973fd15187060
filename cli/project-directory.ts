// The directory of the project that contains this command.
import { dirname } from 'node:path'

export const PROJECT_DIR = dirname(import.meta.dirname)

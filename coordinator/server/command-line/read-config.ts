// Reads the configuration of the coordinator for the commands of `boxwood`.

import { withDataDirectory } from '../../base/project-directory.ts'
import { type Config, loadConfig } from '../config.ts'

/** Messages of the commands are for a terminal; the log has warnings only. Throws ConfigError. */
export const readConfig = (): Config =>
  loadConfig({ BOXWOOD_LOG: 'warn', ...withDataDirectory(process.env, process.cwd()) })

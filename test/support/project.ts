// The project's directory and the command that starts a coordinator.
import { fileURLToPath } from 'node:url'

export const PROJECT_DIR = fileURLToPath(new URL('../..', import.meta.url))

/** Relative to a project directory. The script becomes the coordinator, so its pid is the coordinator's. */
export const START_SCRIPT = 'coordinator/start.sh'

// Prints the state of the machine, as JSON: for namespaces that another process enters.
import { readMachineState } from './machine-state.ts'

process.stdout.write(JSON.stringify(readMachineState()))

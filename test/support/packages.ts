// Shell commands that create a small package in the current directory, for tests of package managers. They need no network.
// Each package has one program, which prints `PROGRAM works`.

/** PROGRAM-1.0.0.tgz for npm. Needs npm. */
export const createNpmPackage = (program: string): string => `mkdir ${program}-npm && (
  cd ${program}-npm
  printf '#!/usr/bin/env node\\nconsole.log("${program} works")\\n' >main.js
  echo '{"name":"${program}","version":"1.0.0","bin":"main.js"}' >package.json
  npm pack --silent --offline --pack-destination=.. >/dev/null
)`

/** PROGRAM-1.0.0-py3-none-any.whl for pip. Needs python3. */
export const createWheel = (program: string): string => `python3 - <<'EOF'
import zipfile
info = '${program}-1.0.0.dist-info'
files = {
    '${program}.py': 'def main():\\n    print("${program} works")\\n',
    f'{info}/METADATA': 'Metadata-Version: 2.1\\nName: ${program}\\nVersion: 1.0.0\\n',
    f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
    f'{info}/entry_points.txt': '[console_scripts]\\n${program} = ${program}:main\\n',
}
files[f'{info}/RECORD'] = ''.join(f'{name},,\\n' for name in [*files, f'{info}/RECORD'])
with zipfile.ZipFile('${program}-1.0.0-py3-none-any.whl', 'w') as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
EOF`

export const wheelFile = (program: string): string => `./${program}-1.0.0-py3-none-any.whl`
export const npmPackageFile = (program: string): string => `./${program}-1.0.0.tgz`

/** The directory PROGRAM-crate for cargo. */
export const createCrate = (program: string): string => `mkdir -p ${program}-crate/src && (
  cd ${program}-crate
  printf '[package]\\nname = "${program}"\\nversion = "1.0.0"\\nedition = "2021"\\n' >Cargo.toml
  echo 'fn main() { println!("${program} works"); }' >src/main.rs
)`

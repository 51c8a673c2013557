/** Call a function of vectors.js on the JSON in a file: `node run.js compare vectors.json`; print what it returns. */
import { readFileSync } from "node:fs";
import * as client from "../labeldp.js";
import * as vectors from "./vectors.js";

const [name, file, ...more] = process.argv.slice(2);
const given = JSON.parse(readFileSync(file, "utf8"));
console.log(JSON.stringify(await vectors[name](client, given, ...more.map(Number))));

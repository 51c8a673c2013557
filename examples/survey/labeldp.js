// For this folder inside the repository. To publish the form, put the client itself here: clients/javascript/labeldp.js
export * from "../../clients/javascript/labeldp.js";
